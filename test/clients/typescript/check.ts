// What the programs have in common.
import { randomUUID } from "node:crypto";

export const base = process.env["FENCEPOST_URL"]!;
export const token = process.env["FENCEPOST_TOKEN"]!;
export const name = (of: string): string => `clients:${of}:${randomUUID()}`;

export function check(what: string, holds: boolean): void {
  if (!holds) throw new Error(`not so: ${what}`);
}
