/** CPU time that this thread has used. Unlike a clock, it does not go on while other programs have the processor. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
