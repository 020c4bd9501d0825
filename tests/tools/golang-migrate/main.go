// golang-migrate: up, down, steps, several at once under its lock, a failure that leaves the version dirty, force; both of its drivers for PostgreSQL.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	_ "github.com/golang-migrate/migrate/v4/database/postgres"
	_ "github.com/golang-migrate/migrate/v4/source/file"
	_ "github.com/lib/pq"
)

func check(err error) {
	if err != nil && !errors.Is(err, migrate.ErrNoChange) {
		panic(err)
	}
}

func assert(ok bool, what ...any) {
	if !ok {
		panic(fmt.Sprint(what...))
	}
}

func main() {
	url := os.Args[1]
	dir, err := os.MkdirTemp("", "migrate")
	check(err)
	defer os.RemoveAll(dir)
	write := func(name, text string) { check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("1_users.up.sql", "BEGIN;\nCREATE TABLE users (id bigserial PRIMARY KEY, name varchar(50) UNIQUE);\nINSERT INTO users (name) VALUES ('a;b');\nCOMMIT;\n")
	write("1_users.down.sql", "DROP TABLE users;")
	write("2_email.up.sql", "ALTER TABLE users ADD COLUMN email text NOT NULL DEFAULT '';\nCREATE INDEX users_email ON users (email);\n")
	write("2_email.down.sql", "DROP INDEX users_email;\nALTER TABLE users DROP COLUMN email;\n")
	write("3_posts.up.sql", "CREATE TABLE IF NOT EXISTS posts (id int PRIMARY KEY, author bigint REFERENCES users ON DELETE CASCADE);")
	write("3_posts.down.sql", "DROP TABLE IF EXISTS posts CASCADE;")
	db, err := sql.Open("postgres", url+"?sslmode=disable")
	check(err)
	tables := func() (n int) {
		check(db.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name IN ('users', 'posts')").Scan(&n))
		return n
	}
	for _, target := range []string{url + "?sslmode=disable", strings.Replace(url, "postgresql://", "pgx5://", 1) + "?sslmode=disable"} {
		open := func() *migrate.Migrate {
			m, err := migrate.New("file://"+dir, target)
			check(err)
			return m
		}
		// Three instances at once.
		var group sync.WaitGroup
		for i := 0; i < 3; i++ {
			group.Add(1)
			go func() {
				defer group.Done()
				m := open()
				check(m.Up())
				m.Close()
			}()
		}
		group.Wait()
		m := open()
		version, dirty, err := m.Version()
		check(err)
		assert(version == 3 && !dirty && tables() == 2, version, dirty)
		check(m.Steps(-2))
		check(m.Migrate(2))
		m.Close()
		write("4_broken.up.sql", "INSERT INTO nowhere VALUES (1);")
		m = open()
		assert(m.Up() != nil)
		version, dirty, err = m.Version()
		assert(version == 4 && dirty, version, dirty)
		check(m.Force(3))
		m.Close()
		check(os.Remove(filepath.Join(dir, "4_broken.up.sql")))
		m = open()
		check(m.Down())
		assert(tables() == 0)
		check(m.Drop())
		m.Close()
	}
	fmt.Println("all fine")
}
