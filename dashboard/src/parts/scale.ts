/** The next number at or above that people read easily: 1, 2 or 5 with zeros, and 1 for nothing. */
export function ceiling(n: number): number {
  if (!(n > 0)) return 1;
  const zeros = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].map((m) => m * zeros).find((m) => m >= n * (1 - 1e-9)) ?? n;
}

/**
 * The path of a line through values, the oldest at the left; a hole where there is none. A value
 * that stands alone is drawn as a short stroke.
 */
export function line(values: readonly (number | undefined)[], top: number, width: number, height: number): string {
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let path = "";
  let pen = false;
  values.forEach((v, i) => {
    if (v !== undefined) {
      const x = (i * step).toFixed(1);
      const y = (height - (Math.min(v, top) / top) * height).toFixed(1);
      const alone = !pen && values[i + 1] === undefined;
      path += `${pen ? "L" : "M"}${x} ${y}${alone ? "h1.5" : ""}`;
    }
    pen = v !== undefined;
  });
  return path;
}

/** Below what a cell of the heat map has which shade: no waiter, fewer than one on average, and so on. */
export const shades = [0, 1, 3, 10, 30] as const;

/** The shade of a cell: 0 where no entry waited, up to 5. */
export function shade(waiting: number): number {
  if (waiting <= 0) return 0;
  const at = shades.slice(1).findIndex((below) => waiting < below);
  return at < 0 ? shades.length : at + 1;
}

/** What fits into a cell: rounded down, as its shade is, and nothing below one. */
export function brief(waiting: number): string {
  if (waiting < 1) return "";
  if (waiting >= 100) return "99+";
  return Math.floor(waiting).toFixed(0);
}
