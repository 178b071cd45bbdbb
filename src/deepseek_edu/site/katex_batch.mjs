// Typeset formulas: reads {root, formulas: [[tex, display], …]} from stdin, writes [{html} | {error}, …].
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { root, formulas } = JSON.parse(readFileSync(0, "utf8"));
const katex = createRequire(`${root}/package.json`)("katex");
const typeset = ([tex, displayMode]) => {
  try {
    return { html: katex.renderToString(tex, { displayMode, output: "htmlAndMathml", strict: "error", trust: false }) };
  } catch (error) {
    return { error: String(error.message) };
  }
};
process.stdout.write(JSON.stringify(formulas.map(typeset)));
