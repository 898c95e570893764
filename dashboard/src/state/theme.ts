import { kept } from "./live";

export const themes = ["system", "light", "dark"] as const;

export const theme = kept("theme", "system");

/** Shows the theme, now and whenever it is changed. */
export function showTheme(): void {
  theme.subscribe((t) => {
    if (t === "light" || t === "dark") document.documentElement.dataset.theme = t;
    else delete document.documentElement.dataset.theme;
  });
}
