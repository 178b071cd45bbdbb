/** The two calls of Plotly that plotly.js makes. */
declare const plotly: {
  react(place: HTMLElement, data: object[], layout: object, config: object): Promise<HTMLElement>;
  purge(place: HTMLElement): void;
};
export default plotly;
