/** Members of the European Union, and the territories of members that belong to it. */
const europeanUnion: ReadonlySet<string> = new Set(
  (
    "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK " +
    "AX GF GP MF MQ RE YT"
  ).split(" "),
);

export const isEuropeanUnion = (country: string): boolean => europeanUnion.has(country);
