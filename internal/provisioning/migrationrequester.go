// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/provisioning/policy"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/skumigration/phase"
)

var migrationPollInterval = ratelimit.Exponential{Initial: time.Second, Max: 15 * time.Second}

// alreadyRunning is recorded for a migration this step did not request.
const alreadyRunning = "under way"

// MigrationRequester requests one migration.
type MigrationRequester struct {
	// API is the target cluster's client; Namespace is where its Weir keeps the record.
	API       client.Client
	Namespace string
	// Reason is shown to the target's users.
	Reason string
	// RequestID is the request ID of this attempt, Kept the recorded one. Again is set if a user retries
	// after a permanent failure.
	RequestID, RecordedID string
	Retry                 bool
	// RecordID records the request ID before the request is sent.
	RecordID func(ctx context.Context, requestID string) error
	Logf     func(format string, args ...any)
}

// MigrationRejectedError is a permanent failure.
type MigrationRejectedError string

// Error implements error.
func (e MigrationRejectedError) Error() string { return string(e) }

// Run returns nil once no load balancer of the cluster is Basic.
func (m *MigrationRequester) Run(ctx context.Context) error {
	reported := ""
	if m.RecordedID != "" {
		m.Logf("migration: already requested or in progress, waiting for it")
	}
	for n := 1; ; n++ {
		migration, err := m.readState(ctx)
		if err != nil {
			return err
		}
		do, reason := policy.NextMigrationAction(migration, m.migrationStep())
		if reason != reported && reason != "" {
			reported = reason
			m.Logf("migration: %s", reason)
		}
		switch do {
		case policy.FinishMigration:
			return nil
		case policy.RejectMigration:
			return MigrationRejectedError(reason)
		case policy.FailMigration:
			return errors.New(reason)
		case policy.RequestMigration:
			err = m.sendRequest(ctx)
		case policy.WaitForMigration:
			if migration.Journal.IsOpen() && m.RecordedID == "" {
				err = m.recordID(ctx, alreadyRunning)
			}
		}
		if err != nil {
			return err
		}
		if err := ratelimit.Sleep(ctx, migrationPollInterval.DelayAfter(n)); err != nil {
			return fmt.Errorf("%s: %w", reason, err)
		}
	}
}

func (m *MigrationRequester) migrationStep() policy.MigrationStep {
	s := policy.MigrationStep{RequestID: m.RequestID, RecordedID: m.RecordedID, Retry: m.Retry}
	if s.WasRunning = m.RecordedID == alreadyRunning; s.WasRunning {
		s.RecordedID = ""
	}
	return s
}

func (m *MigrationRequester) readState(ctx context.Context) (policy.Migration, error) {
	r, err := store.Read(ctx, m.API, m.Namespace)
	if err != nil {
		return policy.Migration{}, err
	}
	return stateOf(r)
}

func stateOf(r store.Record) (policy.Migration, error) {
	migration := policy.Migration{Requests: r.MigrationRequests()}
	migration.Status, migration.HasStatus = r.MigrationReport()
	var err error
	migration.Journal, err = r.MigrationJournal()
	return migration, err
}

// sendRequest sends the request, unless the record has changed.
func (m *MigrationRequester) sendRequest(ctx context.Context) error {
	review := &authenticationv1.SelfSubjectReview{}
	if err := m.API.Create(ctx, review); err != nil {
		return fmt.Errorf("requesting user: %w", err)
	}
	before := m.migrationStep()
	if err := m.recordID(ctx, m.RequestID); err != nil {
		return err
	}
	request := phase.UserRequest{At: time.Now().UTC().Truncate(time.Second), By: review.Status.UserInfo.Username, Reason: m.Reason, ID: m.RequestID}
	return store.UpdateRequests(ctx, m.API, m.Namespace, func(r store.Record) (phase.UserRequests, error) {
		migration, err := stateOf(r)
		if err != nil {
			return phase.UserRequests{}, err
		}
		if do, _ := policy.NextMigrationAction(migration, before); do == policy.RequestMigration {
			migration.Requests.Run = &request
			m.Logf("migration: requested %s", request)
		}
		return migration.Requests, nil
	})
}

func (m *MigrationRequester) recordID(ctx context.Context, requestID string) error {
	if m.RecordedID == requestID {
		return nil
	}
	if err := m.RecordID(ctx, requestID); err != nil {
		return err
	}
	m.RecordedID = requestID
	return nil
}
