ALTER TABLE `orders` ADD `note` text;
