/** Counts of responses by code, and of rate-limited queries. Plain data, so that threads can send it. */
export interface AnswerCounts {
  udp: number[];
  tcp: number[];
  withheld: number;
}

const codes = 24;
const zeros = (): number[] => Array.from({ length: codes }, () => 0);
export const noAnswers = (): AnswerCounts => ({ udp: zeros(), tcp: zeros(), withheld: 0 });

export function sumOf(all: readonly AnswerCounts[]): AnswerCounts {
  const sum = noAnswers();
  for (const { udp, tcp, withheld } of all) {
    for (let code = 0; code < codes; code++) {
      sum.udp[code]! += udp[code]!;
      sum.tcp[code]! += tcp[code]!;
    }
    sum.withheld += withheld;
  }
  return sum;
}
