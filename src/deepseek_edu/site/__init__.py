"""From sources to the finished site: Markdown extension, staging, site shell, finish, checks, archive."""
