"""What has to change in the scripts and styles of either shell, Material for MkDocs or Zensical.

Each change names the text it expects. A release of a shell that no longer has it stops the build, so that nothing is
lost unnoticed.
"""

from __future__ import annotations

import re
from pathlib import Path

from deepseek_edu.site.errors import SiteError
from deepseek_edu.site.prune import prune, words_of

# The shells read both storages without asking whether the browser allows it; refused ones become empty ones.
STORAGE_GUARD = (
    'for(const name of["localStorage","sessionStorage"])try{window[name].length}catch{'
    "Object.defineProperty(window,name,{value:"
    "{refused:true,length:0,getItem:()=>null,setItem(){},removeItem(){},key:()=>null}})}\n"
)
# Both shells ask for the search index at once. It grows with the course, so the request waits until the reader turns to
# the search field, or comes with a query or with words to mark in the address. Zensical has its shortcut Ctrl+K only
# once the index is there; until then the shortcut presses its button, which asks for the index and opens the dialog.
SEARCH_WAITS = (
    "{let asked=false;const wanted=new Promise(resolve=>{const go=()=>{asked=true;resolve()};"
    "const query=new URLSearchParams(location.search);if(query.has('q')||query.has('h'))go();"
    "const near=event=>{if(event.target.closest?.('.md-search,[for=__search]'))go()};"
    "for(const kind of['focusin','pointerover','click'])addEventListener(kind,near)});"
    "addEventListener('keydown',event=>{const button=document.querySelector('.md-search__button');"
    "if(!asked&&button&&event.key==='k'&&(event.ctrlKey||event.metaKey)){event.preventDefault();button.click()}});"
    "const{open,send}=XMLHttpRequest.prototype,held=new WeakSet;"
    "XMLHttpRequest.prototype.open=function(method,url,...rest){"
    "if(/\\/search(_index)?\\.json$/.test(url))held.add(this);return open.call(this,method,url,...rest)};"
    "XMLHttpRequest.prototype.send=function(body){"
    "if(held.has(this))wanted.then(()=>send.call(this,body));else send.call(this,body)}}\n"
)
SEARCH_DIALOG = re.compile(r'<div class="md-search" data-md-component="search" role="dialog">')

BOTH = (
    # instant navigation wants absolute addresses in the sitemap: lost wherever the site is served from another place
    (
        re.compile(r'\(new URL\((?P<text>(?:\w+|\w+\("loc",\w+\))\.textContent)\),(?P<base>\w+)\)'),
        r"(new URL(\g<text>,\g<base>),\g<base>)",
    ),
    # tables would go into a container that no keyboard reaches; ours have one already
    (re.compile(r'"table:not\(\[class\]\)"'), '"table.edu-never"'),
)
CODE_BAR = re.compile(r'"nav"(?=,\{class:"md-code__nav"\})')  # one nameless landmark for each block of code
FOREIGN = re.compile(r'"https://(?:unpkg\.com|cdn\.jsdelivr\.net)/[^"]*"')  # fallbacks for old browsers, and diagrams
SOURCE_MAP = re.compile(r"\n?(?://|/\*)# sourceMappingURL=[^\s*]+(?:\s*\*/)?\s*$")
ZENSICAL_SEARCH = (
    # opened as a file: a script that only a plugin writes; without it the search waits like that of Material
    (re.compile(r'location\.protocol==="file:"\?(?=\w+\(`\$\{new URL\("search\.js")'), "!1?"),
    # a result is named by its title alone, though it shows where it lies and an excerpt: its own text names it whole
    (re.compile(r'"aria-labelledby":`\$\{\w+\.id\}-\$\{\w+\.id\}-title`,'), ""),
    # where a result lies: grey on white at 3.4 to 1
    (re.compile(r"rgb\(var\(--color-foreground\)/\.45\)"), "rgb(var(--color-foreground)/var(--alpha-light))"),
    # the dialog stands in a nameless element of the page: a name, so that it gets our typeface
    (re.compile(r'(?P<host>\w+)\.style\.zIndex="4"'), r'\g<host>.style.zIndex="4",\g<host>.className="edu-search"'),
)


def mend(site: Path) -> None:
    """Mend the scripts and styles that a shell has put into `site`.

    Raises:
        SiteError: the shell's files are not what this step knows how to mend.
    """
    bundles = sorted(site.glob("assets/javascripts/bundle.*.js"))
    if len(bundles) != 1:
        raise SiteError(f"{len(bundles)} files assets/javascripts/bundle.*.js; the finish step expects one")
    bundles[0].write_text(_mended(bundles[0].read_text(encoding="utf-8"), bundles[0].name), encoding="utf-8")
    words = words_of(site)
    for path in [*site.glob("assets/**/*.js"), *site.glob("assets/**/*.css")]:
        content = SOURCE_MAP.sub("\n", path.read_text(encoding="utf-8"))
        path.write_text(prune(content, words) if path.suffix == ".css" else content, encoding="utf-8")


def _mended(text: str, name: str) -> str:
    changes = BOTH + (ZENSICAL_SEARCH if 'attachShadow({mode:"open"})' in text else ())
    for expected, instead in changes:
        text, count = expected.subn(instead, text)
        if count < 1:
            raise SiteError(f"{name} holds no {expected.pattern}, which has to be mended: adapt site/shell.py")
    return FOREIGN.sub('"data:,"', CODE_BAR.sub('"div"', text))
