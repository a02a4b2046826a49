// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

var errAnotherRecorded = errors.New("another process has recorded addresses meanwhile; it is read again")

// readRecord returns the record for an attempt, which then includes the records of other processes.
func (e *Entry) readRecord() poolwrite.Recorded {
	e.mu.Lock()
	e.learnt = nil // the status already includes it
	e.mu.Unlock()
	return e.Recorded()
}

// Recorded returns what Weir recorded for the pool.
func (e *Entry) Recorded() poolwrite.Recorded {
	e.mu.Lock()
	defer e.mu.Unlock()
	return poolwrite.Recorded{
		Written: members.Parse(e.status.WrittenAddresses), Down: members.Down(e.status.Down), Taken: e.status.PoolID != "",
		Instances: members.Instances(e.status.WrittenInstances),
	}
}

// Record implements poolattempt.Ledger. After an error the next attempt assumes that nothing was recorded; if
// the API server did accept it, the next status write replaces it.
func (c *Controller) Record(ctx context.Context, ref poolschedule.Ref, intent poolwrite.Intent) error {
	e, p := c.known(ref)
	if p == nil {
		return ErrGone
	}
	pool := c.Entitlement(p, time.Now()).Pool
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	before, set := e.beforeRecord()
	err := c.statuses.updateInTurn(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		if !intent.States {
			s.PoolID = pool.String()
		}
		s.WrittenAddresses, s.WrittenInstances = members.Format(intent.Written), members.FormatInstances(intent.Instances)
		members.SetDown(s, intent.Down, set, metav1.NewTime(time.Now()).Rfc3339Copy())
		unpark(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, updatingMessage(intent))
	})
	if err = e.judgeRecord(before, err); err != nil {
		return fmt.Errorf("recording what is about to be written: %w", err)
	}
	return nil
}

func (e *Entry) beforeRecord() (v1alpha1.BackendPoolStatus, membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.status.DeepCopy(), *cmp.Or(e.set, &membership.Set{})
}

// judgeRecord restores the previous status and schedules a write if recording failed, or another process
// recorded something that no attempt has read.
func (e *Entry) judgeRecord(before v1alpha1.BackendPoolStatus, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.learnt == nil {
		return nil
	}
	if err == nil {
		err = errAnotherRecorded
	}
	e.amend(func(s *v1alpha1.BackendPoolStatus) { *s = before })
	e.revision++
	return err
}
