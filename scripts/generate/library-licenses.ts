/**
 * SPDX expressions of the libraries inside sharp's libvips packages, by the names in their versions.json. Source: the table
 * in the README.md of those packages.
 */
export const libraryLicenses: Readonly<Record<string, string>> = {
  aom: "BSD-2-Clause",
  archive: "BSD-2-Clause",
  cairo: "MPL-1.1",
  cgif: "MIT",
  exif: "LGPL-3.0-or-later",
  expat: "MIT",
  ffi: "MIT",
  fontconfig: "HPND-sell-variant",
  freetype: "FTL",
  fribidi: "LGPL-3.0-or-later",
  glib: "LGPL-3.0-or-later",
  harfbuzz: "MIT",
  heif: "LGPL-3.0-or-later",
  highway: "BSD-3-Clause",
  imagequant: "BSD-2-Clause",
  lcms: "MIT",
  mozjpeg: "Zlib AND IJG AND BSD-3-Clause",
  pango: "LGPL-3.0-or-later",
  pixman: "MIT",
  png: "libpng-2.0",
  "proxy-libintl": "LGPL-3.0-or-later",
  rsvg: "LGPL-3.0-or-later",
  tiff: "libtiff",
  uhdr: "MIT",
  vips: "LGPL-3.0-or-later",
  webp: "BSD-3-Clause",
  xml2: "MIT",
  "zlib-ng": "Zlib",
};
