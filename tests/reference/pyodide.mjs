// Runs one Python file in Pyodide, in node: node pyodide.mjs PYODIDE WHEELS SCRIPT ORACLES
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, wheels, script, oracles] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${pyodide}/` });
for (const wheel of readdirSync(wheels).filter((file) => file.endsWith(".whl"))) {
  await python.loadPackage(`${wheels}/${wheel}`, { messageCallback() {}, checkIntegrity: false });
}
python.FS.mkdirTree("/oracles");
for (const name of readdirSync(oracles).filter((file) => /^v41_tiny/.test(file))) {
  python.FS.writeFile(`/oracles/${name}`, readFileSync(`${oracles}/${name}`));
}
console.log(python.runPython(readFileSync(script, "utf8")));
