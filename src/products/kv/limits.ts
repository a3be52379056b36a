export const kvLimits = {
  keyBytesMax: 512,
  valueBytesMax: 25 * 1024 * 1024,
  metadataBytesMax: 1024,
  ttlSecondsMin: 60,
  /** About three thousand years. */
  secondsMax: 100_000_000_000,
  listMax: 1000,
  titleCharactersMax: 512,
};
