import { href } from "../../core/router.ts";
import { LinkTabs } from "../../parts/tabs.tsx";

/** The screens of images. */
export const ImageTabs = ({
  account,
  current,
}: {
  account: string;
  current: "" | "playground" | "settings";
}) => (
  <div class="screen-tabs">
    <LinkTabs
      label="Screens of images"
      current={current}
      tabs={[
        { key: "", name: "Library", href: href(`/${account}/images`) },
        { key: "playground", name: "Playground", href: href(`/${account}/images/playground`) },
        { key: "settings", name: "Variants and keys", href: href(`/${account}/images/settings`) },
      ]}
    />
  </div>
);
