// Shows one scatter plot at a time, as chosen; without this script all of them are there.
(() => {
  "use strict";
  const pick = document.getElementById("pick");
  const plots = document.getElementById("plots");
  if (!pick || !plots) return;
  const choice = pick.querySelector("select");

  function show() {
    for (const each of plots.children) each.hidden = each.id !== choice.value;
  }

  choice.addEventListener("change", show);
  pick.hidden = false;
  plots.classList.add("live");
  show();
})();
