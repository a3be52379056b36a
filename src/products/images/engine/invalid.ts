/** The options do not fit this picture. Known only after decoding. */
export class InvalidForImage extends Error {}
