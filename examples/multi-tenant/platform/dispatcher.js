/** Receives every request to *.shops.example. The first label of the host names the customer. */
export default {
  async fetch(request, env) {
    const [customer] = new URL(request.url).hostname.split(".");
    const plan = await env.PLANS.get(customer, "json");
    if (plan === null) return new Response("There is no such shop.\n", { status: 404 });
    const { cpuMs, subRequests } = plan;
    try {
      const script = env.CUSTOMERS.get(
        customer,
        {},
        { limits: { cpuMs, subRequests }, outbound: { customer, plan: plan.name } },
      );
      return await script.fetch(request);
    } catch (error) {
      if (error.message.startsWith("Worker not found"))
        return new Response("This shop is not open yet.\n", { status: 404 });
      // The error belongs to this customer: it is logged under its name and shown on its host only.
      console.error(customer, error.message);
      return new Response(`The shop is out of order: ${error.message}\n`, { status: 500 });
    }
  },
};
