// SPDX-License-Identifier: Apache-2.0

// Package migrations requests a load balancer migration from the Weir of another cluster, through
// its record, and follows it. It does not call Azure.
package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/kube/record"
	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/provision"
	"weir.dev/weir/internal/sleep"
)

var looks = backoff.Doubling{First: time.Second, Max: 15 * time.Second}

// underWay is recorded for a migration this step did not request.
const underWay = "under way"

// Asker requests one migration.
type Asker struct {
	// API is the target cluster's client; Namespace is where its Weir keeps the record.
	API       client.Client
	Namespace string
	// Why is shown to the target's users.
	Why string
	// Wish is the request ID of this attempt, Kept the recorded one. Again is set if a user retries
	// after a permanent failure.
	Wish, Kept string
	Again      bool
	// Keep records the request ID before the request is sent.
	Keep func(ctx context.Context, requestID string) error
	Says func(format string, args ...any)
}

// RefusedError is a permanent failure.
type RefusedError string

// Error implements error.
func (e RefusedError) Error() string { return string(e) }

// Run returns nil once no load balancer of the cluster is Basic.
func (a *Asker) Run(ctx context.Context) error {
	reported := ""
	if a.Kept != "" {
		a.Says("migration: it was asked for before, or under way, and is followed")
	}
	for n := 1; ; n++ {
		is, err := a.look(ctx)
		if err != nil {
			return err
		}
		do, why := provision.NextOfMigration(is, a.step())
		if why != reported && why != "" {
			reported = why
			a.Says("migration: %s", why)
		}
		switch do {
		case provision.EndMigration:
			return nil
		case provision.RefuseMigration:
			return RefusedError(why)
		case provision.FailMigration:
			return errors.New(why)
		case provision.AskMigration:
			err = a.ask(ctx)
		case provision.AwaitMigration:
			if is.Journal.Open() && a.Kept == "" {
				err = a.keep(ctx, underWay)
			}
		}
		if err != nil {
			return err
		}
		if err := sleep.For(ctx, looks.After(n)); err != nil {
			return fmt.Errorf("%s: %w", why, err)
		}
	}
}

func (a *Asker) step() provision.MigrationStep {
	s := provision.MigrationStep{Mine: a.Wish, Has: a.Kept, Again: a.Again}
	if s.Watched = a.Kept == underWay; s.Watched {
		s.Has = ""
	}
	return s
}

func (a *Asker) look(ctx context.Context) (provision.Migration, error) {
	r, err := record.Read(ctx, a.API, a.Namespace)
	if err != nil {
		return provision.Migration{}, err
	}
	return of(r)
}

func of(r record.Record) (provision.Migration, error) {
	is := provision.Migration{Asked: r.Asked()}
	is.Told, is.Speaks = r.Told()
	var err error
	is.Journal, err = r.Migration()
	return is, err
}

// ask sends the request, unless the record has changed.
func (a *Asker) ask(ctx context.Context) error {
	review := &authenticationv1.SelfSubjectReview{}
	if err := a.API.Create(ctx, review); err != nil {
		return fmt.Errorf("who asks: %w", err)
	}
	before := a.step()
	if err := a.keep(ctx, a.Wish); err != nil {
		return err
	}
	request := migrate.Wish{At: time.Now().UTC().Truncate(time.Second), By: review.Status.UserInfo.Username, Why: a.Why, ID: a.Wish}
	return record.Ask(ctx, a.API, a.Namespace, func(r record.Record) (migrate.Asked, error) {
		is, err := of(r)
		if err != nil {
			return migrate.Asked{}, err
		}
		if do, _ := provision.NextOfMigration(is, before); do == provision.AskMigration {
			is.Asked.Run = &request
			a.Says("migration: asked for %s", request)
		}
		return is.Asked, nil
	})
}

func (a *Asker) keep(ctx context.Context, requestID string) error {
	if a.Kept == requestID {
		return nil
	}
	if err := a.Keep(ctx, requestID); err != nil {
		return err
	}
	a.Kept = requestID
	return nil
}
