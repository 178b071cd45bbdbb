import { loadPyodide } from "./pyodide.mjs";

const runtime = new URL("../edu/runtime/", import.meta.url);
const lock = await (await fetch(new URL("pyodide-lock.json", runtime))).text();
const pyodide = await loadPyodide({
  indexURL: new URL("pyodide-PYODIDE_VERSION/", runtime).href,
  packageBaseUrl: runtime.href,
  lockFileContents: lock,
  packages: ["numpy"],
});
postMessage(pyodide.runPython("import numpy as np; float(np.abs(np.arange(-8.0, 8.0, 0.05)).max())"));
