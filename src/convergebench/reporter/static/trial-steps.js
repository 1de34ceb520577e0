// Turns the compact data of a metric's trajectories into rows to draw, by what is chosen.
// Lines of `means` are [arm, source, mean, low, high], of `singles` [arm, source, repeat, scores];
// numbers are whole parts of a score, one for each step.
window.convergebenchSteps = (walks) => {
  "use strict";

  function push(rows, steps, scores, told, ends) {
    scores.forEach((score, i) => {
      if (score === null) return;
      const row = { ...told, step: steps[i], value: score / walks.fine };
      if (ends?.[0] && ends[0][i] !== null) {
        row.low = ends[0][i] / walks.fine;
        row.high = ends[1][i] / walks.fine;
      }
      rows.push(row);
    });
  }

  // One arm's mean over its images at each step: of those images that have one.
  function middle(lines) {
    return walks.steps.map((_, i) => {
      const known = lines.map((line) => line[2][i]).filter((score) => score !== null);
      return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
    });
  }

  // A panel with the mean of repeats, their range, and each of them.
  function closely(rows, line, singles, panel) {
    const [arm, source, mean, low, high] = line;
    const editor = walks.arms[arm];
    push(rows, walks.steps, mean, { panel, part: "mean", key: "mean", editor }, [low, high]);
    for (const [a, s, repeat, scores] of singles) {
      if (a !== arm || s !== source) continue;
      push(rows, walks.few, scores, { panel, part: "single", key: `repeat ${repeat}`, editor });
    }
  }

  // chosen: {panels: "arm" | "source", arm, source}, places in the lists, or null for all.
  function copying(means, singles, chosen) {
    const rows = [];
    const sources = walks.sources.replicate;
    if (chosen.panels === "arm" && chosen.source === null) {
      walks.arms.forEach((editor, arm) => {
        const mine = means.filter((line) => line[0] === arm);
        for (const line of mine) {
          const told = { panel: editor, part: "single", key: sources[line[1]], editor };
          push(rows, walks.steps, line[2], told);
        }
        const told = { panel: editor, part: "mean", key: "mean of images", editor };
        push(rows, walks.steps, middle(mine), told);
      });
    } else if (chosen.panels === "arm") {
      for (const line of means) {
        if (line[1] === chosen.source) closely(rows, line, singles, walks.arms[line[0]]);
      }
    } else if (chosen.arm === null) {
      for (const [arm, source, mean] of means) {
        const editor = walks.arms[arm];
        push(rows, walks.steps, mean, { panel: sources[source], part: "mean", key: editor, editor });
      }
    } else {
      for (const line of means) {
        if (line[0] === chosen.arm) closely(rows, line, singles, sources[line[1]]);
      }
    }
    return rows;
  }

  function adding(means, singles) {
    const rows = [];
    const sources = walks.sources.accumulate;
    for (const line of means) {
      const arm = walks.arms[line[0]];
      closely(rows, line, singles, sources.length > 1 ? `${arm} · ${sources[line[1]]}` : arm);
    }
    return rows;
  }

  const words = {
    images: "Every image a thin line, the mean of those that have a score a thick one.",
    editors: "Every editor a line, the mean of its repeats.",
    repeats: "Mean of the repeats as a thick line, each repeat a thin one, the band from the least to the greatest.",
  };
  const about = ({ panels, arm, source }) =>
    panels === "arm" ? (source === null ? words.images : words.repeats) : arm === null ? words.editors : words.repeats;

  return { copying, adding, about };
};
