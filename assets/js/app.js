/**
 * Entry of the browser side: defines the custom elements and tells the page that they work.
 *
 * Pages are complete without this script. With it, elements mount themselves whenever they enter the document, also
 * when the site shell swaps the content of a page instead of loading a new one.
 */

import { EduLab } from "./lab.js";
import { EduWidget } from "./widget.js";

customElements.define("edu-widget", EduWidget);
customElements.define("edu-lab", EduLab);

document.documentElement.dataset.eduReady = "";
