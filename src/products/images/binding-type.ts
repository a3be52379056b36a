import { bindingType } from "../../workers/binding-type.ts";

/** A binding to transformations of images. */
export const imagesType = bindingType({ fields: {} });
