/** The options do not fit this picture, which is known only when it has been looked at. */
export class InvalidForImage extends Error {}
