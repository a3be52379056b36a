/** The mark and the name: an edge with threads that keep it from fraying. */
export const Brand = () => (
  <span class="brand">
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" class="brand-ground" />
      <path d="M9 7v18M14 7v18" class="brand-edge" />
      <path d="M19 9h5M19 16h5M19 23h5" class="brand-thread" />
    </svg>
    Selvedge
  </span>
);
