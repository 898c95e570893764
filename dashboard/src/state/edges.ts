import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/**
 * Marks an element that scrolls sideways by where it hides something: `data-before` and `data-after`,
 * at which its edges fade. `there` changes when the element comes to be after the first time.
 */
export function useEdges<E extends HTMLElement>(there = true): RefObject<E | null> {
  const ref = useRef<E>(null);
  useEffect(() => {
    const element = ref.current;
    if (!there || !element) return;
    const look = (): void => mark(element);
    const sizes = new ResizeObserver(look); // it looks at once, too
    for (const e of [element, ...element.children]) sizes.observe(e);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [there]);
  return ref;
}

function mark(element: HTMLElement): void {
  const { scrollLeft, scrollWidth, clientWidth } = element;
  element.toggleAttribute("data-before", scrollLeft > 1); // parts of a pixel are nothing
  element.toggleAttribute("data-after", scrollLeft < scrollWidth - clientWidth - 1);
}

/** Scrolls a list sideways so that one of it is in the middle, and the page not at all. */
export function center(list: HTMLElement, one: HTMLElement): void {
  const [all, at] = [list.getBoundingClientRect(), one.getBoundingClientRect()];
  list.scrollLeft += at.left + at.width / 2 - (all.left + all.width / 2);
}
