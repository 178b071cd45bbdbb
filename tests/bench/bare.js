// The yardstick: the least a page can do to show a number computed by numpy. Same files, same server, one click.
const button = document.querySelector("button");
const output = document.querySelector("output");
button.addEventListener("click", () => {
  const began = performance.now();
  const worker = new Worker("bare_worker.js", { type: "module" });
  worker.onmessage = ({ data }) => {
    output.textContent = data;
    requestAnimationFrame(() => (document.body.dataset.took = String(performance.now() - began)));
  };
});
