// Draws each [data-figure] with Plotly: the server says what, the theme's properties say in which ink.
"use strict";

{
  const NARROW = 640;

  // The colour that a property has in the theme of this moment.
  function colour(name) {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  const dressLabel = (label) => ({ ...label, font: { ...label.font, color: colour(`--${label.name}-text`) } });

  function dress(figure, width) {
    const ink = colour("--ink"), quiet = colour("--quiet"), line = colour("--line");
    const narrow = width < NARROW;
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line, tickfont: { color: quiet }, automargin: true };
    const layout = figure.layout;
    const named = layout.annotations.length && !narrow;
    return {
      ...layout,
      // Names stand at the ends of their lines where there is room, else in a legend below.
      annotations: named ? layout.annotations.map(dressLabel) : [],
      showlegend: layout.showlegend || !named,
      legend: { orientation: "h", y: -0.22, font: { color: ink, size: 12 } },
      height: narrow ? 340 : 360,
      margin: { l: 48, r: named ? 190 : 12, t: 8, b: 44 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
      hoverlabel: { bgcolor: colour("--surface"), bordercolor: line, font: { color: ink } },
      xaxis: { ...layout.xaxis, ...axis, title: { ...layout.xaxis.title, font: { color: quiet, size: 13 } } },
      yaxis: { ...layout.yaxis, ...axis, title: { ...layout.yaxis.title, font: { color: quiet, size: 13 } } },
      dragmode: false,
    };
  }

  async function draw(plot, { again }) {
    if (!plot.figure || again) {
      const address = new URL(plot.dataset.figure, location);
      // A figure that was cached in an earlier state of the site has another address.
      address.searchParams.set("state", document.body.dataset.state);
      const answer = await fetch(address);
      if (!answer.ok) return; // keep what is drawn
      plot.figure = await answer.json();
    }
    if (!plot.figure.data?.length) return;
    const config = { displayModeBar: false, responsive: true };
    await Plotly.react(plot, plot.figure.data, dress(plot.figure, plot.clientWidth), config);
    plot.dataset.drawn = plot.figure.data.length;
  }

  window.drawCharts = ({ again = true } = {}) => {
    for (const plot of document.querySelectorAll("[data-figure]")) draw(plot, { again });
  };

  window.drawCharts();
  document.addEventListener("themechange", () => window.drawCharts({ again: false }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.drawCharts({ again: false }));
  matchMedia(`(max-width: ${NARROW}px)`).addEventListener("change", () => window.drawCharts({ again: false }));
}
