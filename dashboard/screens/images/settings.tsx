import { useState } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { useAction } from "../../core/action.ts";
import { useGet } from "../../core/cache.ts";
import { useRefusal } from "../../core/permissions.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { SelectField, Switch, TextField, useForm } from "../../parts/form.tsx";
import { Card, Copy, Notice, Page } from "../../parts/layout.tsx";
import { Loaded } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import type { ScreenProps } from "../../shell/route.ts";
import { base, imagesPath, type SigningKey, type Variant } from "./image.ts";
import { ImageTabs } from "./tabs.tsx";

/** How pictures are delivered: named variants, options in addresses, and the keys of signed addresses. */
export default function ImageSettings({ account }: ScreenProps) {
  return (
    <Page title="Images" about="Sizes that have a name, and the keys of signed addresses.">
      <ImageTabs account={account} current="settings" />
      <div class="stack">
        <Flexible account={account} />
        <Variants account={account} />
        <Keys account={account} />
      </div>
    </Page>
  );
}

function Flexible({ account }: { account: string }) {
  const path = `${imagesPath(account)}/config`;
  const config = useGet<{ flexible_variants: boolean }>(path);
  const op = `PATCH ${base}/config`;
  const refusal = useRefusal()(op);
  const action = useAction({ done: "The settings were changed", invalidates: [path], tellsFailure: true });
  return (
    <Loaded of={config} rows={1}>
      {({ flexible_variants: isOn }) => {
        const call = { op, params: { account_id: account }, body: { flexible_variants: !isOn } };
        return (
          <Card>
            <div class="setting">
              <Switch
                label="Options in addresses"
                hint="Anyone may ask for any size with an address such as …/width=400. Without it, only named variants are delivered."
                isOn={isOn}
                refusal={refusal}
                onChange={() => void action.run(call)}
              />
              <AsCode call={call} />
            </div>
          </Card>
        );
      }}
    </Loaded>
  );
}

type Open = { kind: "new" } | { kind: "edit" | "delete"; variant: Variant } | undefined;

function Variants({ account }: { account: string }) {
  const path = `${imagesPath(account)}/variants`;
  const variants = useGet<{ variants: Record<string, Variant> }>(path);
  const [open, setOpen] = useState<Open>(undefined);
  const refusal = useRefusal()(`POST ${base}/variants`);
  const close = (): void => setOpen(undefined);
  return (
    <Card
      title="Variants"
      actions={
        <Button icon="plus" refusal={refusal} onPress={() => setOpen({ kind: "new" })}>
          New variant
        </Button>
      }
    >
      <Loaded of={variants} rows={2}>
        {(data) => (
          <Table
            label="Variants"
            rows={Object.values(data.variants)}
            keyOf={({ id }) => id}
            columns={[
              { title: "Name", isWide: true, cell: ({ id }) => <code>{id}</code> },
              { title: "Size", cell: ({ options }) => `${options.width} × ${options.height}` },
              { title: "Fit", cell: ({ options }) => options.fit },
              {
                title: "Signed",
                isExtra: true,
                cell: ({ neverRequireSignedURLs }) => (neverRequireSignedURLs ? "never" : "for private ones"),
              },
            ]}
            actions={(variant) => (
              <div class="row">
                <Button
                  icon="edit"
                  kind="quiet"
                  label={`Edit ${variant.id}`}
                  refusal={refusal}
                  onPress={() => setOpen({ kind: "edit", variant })}
                />
                <Button
                  icon="trash"
                  kind="quiet"
                  label={`Delete ${variant.id}`}
                  refusal={refusal ?? (variant.id === "public" ? "every account has it" : undefined)}
                  onPress={() => setOpen({ kind: "delete", variant })}
                />
              </div>
            )}
          />
        )}
      </Loaded>
      {open !== undefined && open.kind !== "delete" && (
        <VariantDialog
          account={account}
          variant={open.kind === "edit" ? open.variant : undefined}
          onClose={close}
        />
      )}
      {open?.kind === "delete" && (
        <Confirm
          title={`Delete ${open.variant.id}`}
          submit="Delete"
          call={{
            op: `DELETE ${base}/variants/{variant_name}`,
            params: { account_id: account, variant_name: open.variant.id },
          }}
          done="The variant was deleted"
          invalidates={[imagesPath(account)]}
          onClose={close}
        >
          <p>Addresses that end with it answer 404.</p>
        </Confirm>
      )}
    </Card>
  );
}

const fits = ["scale-down", "contain", "cover", "crop", "pad"] as const;

function VariantDialog({
  account,
  variant,
  onClose,
}: {
  account: string;
  variant: Variant | undefined;
  onClose: () => void;
}) {
  const { values, set, field } = useForm({
    id: variant?.id ?? "",
    fit: variant?.options.fit ?? "scale-down",
    width: String(variant?.options.width ?? 1200),
    height: String(variant?.options.height ?? 1200),
    metadata: variant?.options.metadata ?? "none",
    isNeverSigned: variant?.neverRequireSignedURLs ?? false,
  });
  const body = {
    options: {
      ...variant?.options,
      fit: values.fit,
      width: Number(values.width),
      height: Number(values.height),
      metadata: values.metadata,
    },
    neverRequireSignedURLs: values.isNeverSigned,
  };
  return (
    <FormDialog
      title={variant === undefined ? "New variant" : `Edit ${variant.id}`}
      call={
        variant === undefined
          ? { op: `POST ${base}/variants`, params: { account_id: account }, body: { id: values.id, ...body } }
          : {
              op: `PATCH ${base}/variants/{variant_name}`,
              params: { account_id: account, variant_name: variant.id },
              body,
            }
      }
      submit="Save"
      done="The variant was saved"
      invalidates={[imagesPath(account)]}
      onClose={onClose}
    >
      {variant === undefined && (
        <TextField label="Name" {...field("id")} hint="Letters, digits, - and _" isMono autofocus />
      )}
      <div class="form-row">
        <TextField label="Width" type="number" {...field("width", "options.width")} />
        <TextField label="Height" type="number" {...field("height", "options.height")} />
      </div>
      <div class="form-row">
        <SelectField label="Fit" {...field("fit", "options.fit")} options={fits} />
        <SelectField
          label="Metadata of the file"
          {...field("metadata", "options.metadata")}
          options={["none", "copyright", "keep"]}
        />
      </div>
      <Switch
        label="Never signed"
        hint="Private pictures are delivered in this variant without a signature."
        isOn={values.isNeverSigned}
        onChange={(isOn) => set("isNeverSigned", isOn)}
      />
    </FormDialog>
  );
}

function Keys({ account }: { account: string }) {
  const path = `${imagesPath(account)}/keys`;
  const refusal = useRefusal()(`GET ${base}/keys`);
  const keys = useGet<{ keys: SigningKey[] }>(refusal === undefined ? path : undefined);
  const [open, setOpen] = useState<{ name: string } | "new" | undefined>(undefined);
  const close = (): void => setOpen(undefined);
  return (
    <Card
      title="Signing keys"
      actions={
        <Button icon="plus" refusal={refusal} onPress={() => setOpen("new")}>
          New key
        </Button>
      }
    >
      {refusal !== undefined ? (
        <Notice tone="warn">The keys are shown to a token that {refusal.replace("needs", "has")}.</Notice>
      ) : (
        <Loaded of={keys} rows={1}>
          {(data) => (
            <Table
              label="Signing keys"
              rows={data.keys}
              keyOf={({ name }) => name}
              columns={[
                { title: "Name", isWide: true, cell: ({ name }) => <code>{name}</code> },
                { title: "Value", cell: ({ name, value }) => <Copy text={value} label={`Copy ${name}`} /> },
              ]}
              actions={({ name }) => (
                <Button
                  icon="trash"
                  kind="quiet"
                  label={`Delete the key ${name}`}
                  onPress={() => setOpen({ name })}
                />
              )}
            />
          )}
        </Loaded>
      )}
      {open === "new" && <NewKey account={account} path={path} onClose={close} />}
      {typeof open === "object" && (
        <Confirm
          title={`Delete the key ${open.name}`}
          submit="Delete"
          call={{
            op: `DELETE ${base}/keys/{signing_key_name}`,
            params: { account_id: account, signing_key_name: open.name },
          }}
          done="The key was deleted"
          invalidates={[path]}
          onClose={close}
        >
          <p>Addresses that it has signed are refused at once.</p>
        </Confirm>
      )}
    </Card>
  );
}

function NewKey({ account, path, onClose }: { account: string; path: string; onClose: () => void }) {
  const { values, field } = useForm({ name: "" });
  return (
    <FormDialog
      title="New key"
      call={{
        op: `PUT ${base}/keys/{signing_key_name}`,
        params: { account_id: account, signing_key_name: values.name },
      }}
      submit="Create the key"
      done="The key was created"
      refusal={values.name === "" ? "give it a name" : undefined}
      invalidates={[path]}
      onClose={onClose}
    >
      <TextField label="Name" {...field("name")} isMono autofocus />
    </FormDialog>
  );
}
