import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compare } from "../../assets/js/compare.js";

const vectors = JSON.parse(readFileSync(new URL("../grading/compare_vectors.json", import.meta.url), "utf8"));

test("the shared vectors are there", () => assert.ok(vectors.length >= 50));

for (const { name, expected, got, tolerance, ok, path, gap } of vectors) {
  test(name, () => {
    const result = compare(expected, got, tolerance);
    assert.equal(result.ok, ok);
    if (ok) return;
    assert.equal(result.path, path);
    assert.ok(result.reason.length > 0);
    if (gap === null) assert.equal(result.gap, null);
    else if (gap !== undefined) assert.ok(Math.abs(result.gap - gap) <= 1e-12 * Math.abs(gap), `${result.gap} is not ${gap}`);
  });
}
