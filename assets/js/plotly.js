/** Drawing with Plotly's basic bundle; loaded when a reader asks for an interactive figure. Colours come from the page. */

import Plotly from "plotly.js-basic-dist-min";

const CONFIG = { displaylogo: false, displayModeBar: false, responsive: false, doubleClick: "reset" };

/**
 * The colours of the page as they are now.
 * @param {Element} place
 */
function paint(place) {
  const style = getComputedStyle(place);
  const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const probe = document.createElement("div");
  probe.className = "edu-svg";
  probe.hidden = true;
  place.append(probe);
  const token = (/** @type {string} */ name) => {
    const mark = document.createElement("span");
    mark.className = name;
    probe.append(mark);
    const found = getComputedStyle(mark).getPropertyValue("--k").trim();
    return found || value(`--${name}`) || value("--edu-ink");
  };
  return { ink: value("--edu-ink"), muted: value("--edu-muted"), line: value("--edu-line"), sans: value("--edu-sans"), token, done: () => probe.remove() };
}

/**
 * @param {{data: any[], layout: any}} figure without colours
 * @param {HTMLElement} place
 */
function coloured(figure, place) {
  const { ink, muted, line, sans, token, done } = paint(place);
  const data = figure.data.map((trace) => {
    const color = token(trace.meta?.token ?? "k-series-1");
    return { ...trace, line: { ...trace.line, color }, marker: { ...trace.marker, color } };
  });
  done();
  const axis = { gridcolor: line, linecolor: muted, zerolinecolor: muted, tickcolor: muted, automargin: true };
  const { title, ...rest } = figure.layout;
  const layout = {
    ...rest,
    xaxis: { ...axis, ...rest.xaxis },
    yaxis: { ...axis, ...rest.yaxis },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: sans || "sans-serif", size: 13, color: ink },
    margin: { l: 48, r: 12, t: 12, b: 40 },
    legend: { orientation: "h", y: -0.25 },
    height: 380,
  };
  return { data, layout };
}

/** @param {HTMLElement} place @param {{data: any[], layout: any}} figure */
export async function draw(place, figure) {
  const { data, layout } = coloured(figure, place);
  await Plotly.react(place, data, { ...layout, width: place.clientWidth || 600 }, CONFIG);
}

/** @param {HTMLElement} place */
export const purge = (place) => Plotly.purge(place);
