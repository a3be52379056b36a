/** Path prefix of delivery on every host of the edge. */
export const deliveryPrefix = "/cdn-cgi/imagedelivery";
