// Draws each [data-figure] with Plotly, in the inks of the theme of this moment.
"use strict";

{
  const NARROW = 560;
  const SMALL = 250;
  const figures = JSON.parse(document.getElementById("figures").textContent);

  // The colour that a property has in this theme, as red, green and blue.
  function channels(name) {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3);
    probe.remove();
    return found.join(", ");
  }

  const ink = (name, opacity = 1) => `rgba(${channels(name)}, ${opacity})`;

  function dressTrace(trace) {
    const { meta } = trace;
    if (meta.band) return { ...trace, fillcolor: ink(meta.ink, 0.16) };
    if (meta.coloured) return { ...trace, marker: { ...trace.marker, line: { color: ink("--ink"), width: 1 } } };
    const colour = ink(meta.ink);
    return {
      ...trace,
      line: trace.line && { ...trace.line, color: colour },
      marker: { ...trace.marker, color: colour },
      error_y: trace.error_y && { ...trace.error_y, color: colour },
    };
  }

  function dressLayout(layout, plot) {
    const quiet = ink("--quiet"), line = ink("--line");
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { color: quiet }, automargin: true };
    const dressAxis = (given) => ({ ...given, ...axis, title: { ...given.title, font: { color: quiet, size: 13 } } });
    const narrow = plot.clientWidth < NARROW;
    const bar = layout.coloraxis?.colorbar;
    const coloured = bar && {
      ...layout.coloraxis,
      colorbar: { ...bar, tickfont: { color: quiet }, title: { ...bar.title, font: { ...bar.title.font, color: quiet } }, outlinewidth: 0 },
    };
    const small = plot.closest(".small-ones");
    const named = figures[plot.dataset.figure].data.filter((trace) => trace.showlegend !== false).length;
    return {
      ...layout,
      ...(coloured && { coloraxis: coloured }),
      shapes: layout.shapes?.map((shape) => ({ ...shape, line: { ...shape.line, color: quiet } })),
      xaxis: dressAxis(layout.xaxis),
      yaxis: dressAxis(layout.yaxis),
      // On a narrow page most names have a line of the legend to themselves.
      height: small ? SMALL : narrow ? 290 + 20 * named : 400,
      margin: { l: 52, r: 12, t: 12, b: 44 },
      showlegend: !small,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: ink("--ink"), size: 12 } },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink("--ink") },
      hoverlabel: { bgcolor: ink("--surface"), bordercolor: line, font: { color: ink("--ink") } },
      dragmode: false,
    };
  }

  function drawAll() {
    for (const plot of document.querySelectorAll("[data-figure]")) {
      const figure = figures[plot.dataset.figure];
      const config = { displayModeBar: false, responsive: true };
      Plotly.react(plot, figure.data.map(dressTrace), dressLayout(figure.layout, plot), config);
    }
  }

  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
}
