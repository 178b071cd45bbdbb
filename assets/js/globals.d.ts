/** Hashed names of the parts a page loads later; written by site/bundle.py. */
declare const EDU_FILES: Record<string, string>;
/** Version of the Pyodide package the site was built with; written by site/bundle.py. */
declare const PYODIDE_VERSION: string;
