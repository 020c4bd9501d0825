// GORM: migration of a schema and of its change, associations, preloading, upserts, hooks, transactions and savepoints, raw SQL.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Company struct {
	ID   int
	Name string `gorm:"size:40;uniqueIndex"`
}

type Card struct {
	gorm.Model
	Number string
	UserID uint
}

type Language struct {
	Code string `gorm:"primaryKey;size:2"`
}

type User struct {
	gorm.Model
	Name      string  `gorm:"not null;index:name_age,priority:1"`
	Age       uint8   `gorm:"index:name_age,priority:2;check:age < 200"`
	Email     *string `gorm:"unique"`
	Balance   float64 `gorm:"type:numeric(10,2);default:0"`
	Active    bool    `gorm:"default:true"`
	Birthday  *time.Time
	Photo     []byte
	Facts     string `gorm:"type:jsonb;default:'{}'"`
	CompanyID *int
	Company   *Company
	Cards     []Card     `gorm:"constraint:OnUpdate:CASCADE,OnDelete:CASCADE"`
	Languages []Language `gorm:"many2many:user_languages"`
	ManagerID *uint
	Team      []User `gorm:"foreignkey:ManagerID"`
}

// UserLater is the table after a change.
type UserLater struct {
	User
	Nick    string  `gorm:"size:20;default:none;comment:what friends say"`
	Balance float64 `gorm:"type:numeric(12,3);default:1"`
}

func (UserLater) TableName() string { return "users" }

func (u *User) BeforeCreate(*gorm.DB) error {
	if u.Name == "" {
		return errors.New("a user without a name")
	}
	return nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func assert(ok bool, what ...any) {
	if !ok {
		panic(fmt.Sprint(what...))
	}
}

func main() {
	db, err := gorm.Open(postgres.Open(os.Args[1]+"?sslmode=disable"), &gorm.Config{Logger: logger.Default.LogMode(logger.Silent), TranslateError: true})
	check(err)
	// The second time it reads all columns, indexes and constraints back.
	for i := 0; i < 2; i++ {
		check(db.AutoMigrate(&Company{}, &Language{}, &User{}, &Card{}))
	}
	migrator := db.Migrator()
	assert(migrator.HasTable("users") && migrator.HasColumn(&User{}, "Email") && migrator.HasIndex(&User{}, "name_age") && migrator.HasConstraint(&User{}, "Cards"))

	email := "ada@example.com"
	ada := User{Name: "Ada", Age: 30, Email: &email, Company: &Company{Name: "Engines"}, Cards: []Card{{Number: "1"}, {Number: "2"}}, Languages: []Language{{"en"}, {"fr"}}}
	check(db.Create(&ada).Error)
	assert(ada.ID == 1 && ada.Active, ada.ID)
	var users []User
	for i := 0; i < 100; i++ {
		users = append(users, User{Name: fmt.Sprint("u", i), Age: uint8(i), ManagerID: &ada.ID})
	}
	check(db.CreateInBatches(users, 30).Error)
	assert(errors.Is(db.Create(&User{Name: "x", Email: &email}).Error, gorm.ErrDuplicatedKey))
	assert(db.Create(&User{}).Error != nil)

	var found User
	check(db.Preload("Cards", "number <> ?", "1").Preload("Languages").Preload("Team", func(tx *gorm.DB) *gorm.DB { return tx.Order("age").Limit(3) }).Joins("Company").First(&found, "users.name = ?", "Ada").Error)
	assert(len(found.Cards) == 1 && len(found.Languages) == 2 && len(found.Team) == 3 && found.Company.Name == "Engines", found)
	assert(errors.Is(db.First(&User{}, 9999).Error, gorm.ErrRecordNotFound))
	var n int64
	check(db.Model(&User{}).Where(&User{Name: "u1"}).Or("age BETWEEN ? AND ?", 90, 95).Not("name IN ?", []string{"u90"}).Count(&n).Error)
	assert(n == 6, n)
	type Row struct {
		Odd   int
		Total int
	}
	var rows []Row
	check(db.Model(&User{}).Select("age % 2 AS odd, count(*) AS total").Where("age > (?)", db.Model(&User{}).Select("avg(age)")).Group("odd").Having("count(*) > ?", 1).Order("odd").Scan(&rows).Error)
	assert(len(rows) == 2 && rows[0].Total == 25, rows)

	check(db.Model(&ada).Updates(map[string]any{"age": gorm.Expr("age + ?", 1), "balance": 2.5}).Error)
	check(db.Clauses(clause.Returning{}).Model(&found).Where("name = ?", "Ada").Update("active", false).Error)
	assert(found.Age == 31 && !found.Active && found.Balance == 2.5, found.Age, found.Balance)
	check(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&Company{Name: "Engines"}).Error)
	check(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Company{Name: "Engines"}).Error)
	var first Company
	check(db.Where(Company{Name: "Looms"}).Attrs(Company{ID: 77}).FirstOrCreate(&first).Error)
	assert(first.ID == 77)
	check(db.Save(&Language{"de"}).Error)
	check(db.Model(&ada).Association("Languages").Replace([]Language{{"de"}}))
	assert(db.Model(&ada).Association("Languages").Count() == 1)
	check(db.Delete(&User{}, "name LIKE ?", "u9%").Error)
	check(db.Model(&User{}).Count(&n).Error)
	assert(n == 90, n)
	check(db.Unscoped().Model(&User{}).Count(&n).Error)
	assert(n == 101, n)

	back := db.Transaction(func(tx *gorm.DB) error {
		check(tx.Delete(&User{}, "1 = 1").Error)
		return errors.New("back")
	})
	assert(back != nil && back.Error() == "back", back)
	check(db.Transaction(func(tx *gorm.DB) error {
		var locked User
		check(tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Where("age = ?", 5).First(&locked).Error)
		check(tx.Clauses(clause.Locking{Strength: "SHARE", Table: clause.Table{Name: clause.CurrentTable}}).Find(&users, "age < ?", 3).Error)
		_ = tx.Transaction(func(inner *gorm.DB) error {
			check(inner.Model(&locked).Update("name", "inner").Error)
			return errors.New("only the savepoint")
		})
		return tx.Model(&locked).Update("name", "outer").Error
	}))
	check(db.Model(&User{}).Where("name IN ?", []string{"inner", "outer"}).Count(&n).Error)
	assert(n == 1, n)
	seen := 0
	check(db.Where("age < ?", 50).FindInBatches(&users, 20, func(tx *gorm.DB, batch int) error { seen += len(users); return nil }).Error)
	assert(seen == 50, seen)
	var total float64
	check(db.Raw("SELECT sum(balance) FROM users WHERE name = @name", map[string]any{"name": "Ada"}).Scan(&total).Error)
	assert(total == 2.5, total)

	// The table changes: a column more, another type, another default; then names, indexes, and away.
	check(db.AutoMigrate(&UserLater{}))
	types, err := migrator.ColumnTypes("users")
	check(err)
	for _, column := range types {
		if column.Name() == "balance" {
			precision, scale, _ := column.DecimalSize()
			assert(precision == 12 && scale == 3, precision, scale)
		}
	}
	check(migrator.RenameColumn("users", "nick", "short"))
	check(migrator.DropIndex(&User{}, "name_age"))
	check(migrator.DropConstraint(&User{}, "Cards"))
	check(migrator.DropColumn("users", "short"))
	check(migrator.RenameTable("cards", "plastic"))
	tables, err := migrator.GetTables()
	check(err)
	assert(len(tables) == 5, tables)
	indexes, err := migrator.GetIndexes(&User{})
	check(err)
	assert(len(indexes) >= 1, len(indexes))
	check(migrator.DropTable("user_languages", "plastic", "users", "companies", "languages"))
	fmt.Println("all fine")
}
