/**
 * Entry of the browser side: defines the custom elements and tells the page that they work.
 *
 * Pages are complete without this script. With it, elements mount themselves whenever they enter the document, also
 * when the site shell swaps the content of a page instead of loading a new one.
 */

import { EduChapter } from "./chapter.js";
import { EduChart } from "./chart.js";
import { EduLab } from "./lab.js";
import { EduOffline, watchCopy } from "./offline.js";
import { EduProgress } from "./progress.js";
import { EduQuiz } from "./quiz.js";
import { EduWalk } from "./walk.js";
import { EduWidget } from "./widget.js";

customElements.define("edu-chart", EduChart);
customElements.define("edu-lab", EduLab);
customElements.define("edu-offline", EduOffline);
customElements.define("edu-progress", EduProgress);
customElements.define("edu-quiz", EduQuiz);
customElements.define("edu-walk", EduWalk);
customElements.define("edu-widget", EduWidget);
customElements.define("edu-chapter", EduChapter); // last: it counts the others

document.documentElement.dataset.eduReady = "";
watchCopy();
