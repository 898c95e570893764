// Before the first paint, so that nobody who likes it dark is dazzled. It is a file of its
// own because the page's policy forbids inline scripts.
try {
  const theme = localStorage.getItem("fencepost-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is off: the system's theme it is.
}
