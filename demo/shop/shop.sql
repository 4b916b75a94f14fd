-- An online shop: its tables come from Kafka, its views go to PostgreSQL, Delta Lake and Kafka.
-- ${KAFKA}, ${DATABASE} and ${FOLDER} are set by python -m demo.shop.

CREATE STREAMING TABLE customers (customer BIGINT PRIMARY KEY, name STRING NOT NULL, city STRING)
  USING kafka OPTIONS (kafka.bootstrap.servers '${KAFKA}', subscribe 'customers',
    values 'json', from.customer 'key', changes 'upsert');
CREATE STREAMING TABLE products (product BIGINT PRIMARY KEY, title STRING NOT NULL, category STRING, price DECIMAL(8, 2))
  USING kafka OPTIONS (kafka.bootstrap.servers '${KAFKA}', subscribe 'products',
    values 'json', from.product 'key', changes 'upsert');

-- A message without a value says that the order is cancelled.
CREATE STREAMING TABLE orders (
  order_id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, product BIGINT NOT NULL, quantity INT NOT NULL, paid BOOLEAN
) USING kafka OPTIONS (kafka.bootstrap.servers '${KAFKA}', subscribe 'orders',
    values 'json', from.order_id 'key', from.customer 'value.customer.id', changes 'upsert', bad_rows '${FOLDER}/bad');

-- A price that changes, or a customer who moves, changes all their orders.
CREATE MATERIALIZED VIEW revenue
  USING jdbc OPTIONS (url '${DATABASE}', dbtable 'revenue', output 'upsert')
  AS SELECT c.city, p.category, COUNT(*) AS orders, SUM(o.quantity * p.price) AS amount,
            COUNT(CASE WHEN o.paid THEN 1 END) AS paid
  FROM orders o JOIN customers c ON c.customer = o.customer JOIN products p ON p.product = o.product
  GROUP BY c.city, p.category;

-- Every customer, those without an order, too.
CREATE MATERIALIZED VIEW by_customer
  USING delta OPTIONS (path '${FOLDER}/by_customer', output 'upsert')
  AS SELECT c.customer, c.name, COUNT(o.order_id) AS orders, COALESCE(SUM(o.quantity), 0) AS pieces
  FROM customers c LEFT JOIN orders o ON o.customer = c.customer
  GROUP BY c.customer, c.name;

-- Products that nobody has ordered.
CREATE MATERIALIZED VIEW unsold
  USING kafka OPTIONS (kafka.bootstrap.servers '${KAFKA}', topic 'unsold', output 'upsert')
  AS SELECT product, title FROM products p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.product = p.product);
