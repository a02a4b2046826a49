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

// errAnotherRecorded says that the ledger holds what the attempt has not seen.
var errAnotherRecorded = errors.New("another process has recorded addresses meanwhile; it is read again")

// readRecord is Recorded for an attempt, which then knows what another process has recorded.
func (e *Entry) readRecord() poolwrite.Recorded {
	e.mu.Lock()
	e.learnt = nil // the status holds it
	e.mu.Unlock()
	return e.Recorded()
}

// Recorded is what is on record of the pool.
func (e *Entry) Recorded() poolwrite.Recorded {
	e.mu.Lock()
	defer e.mu.Unlock()
	return poolwrite.Recorded{
		Written: members.Parse(e.status.WrittenAddresses), Down: members.Down(e.status.Down), Taken: e.status.PoolID != "",
		Instances: members.Instances(e.status.WrittenInstances),
	}
}

// Record implements poolattempt.Ledger. On an error nothing was recorded, as far as
// the next attempt is concerned; if the API has taken it all the same, the next write
// of the status replaces it.
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

// beforeRecord returns the status as it is, and what the attempt works with.
func (e *Entry) beforeRecord() (v1alpha1.BackendPoolStatus, membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.status.DeepCopy(), *cmp.Or(e.set, &membership.Set{})
}

// judgeRecord has the status be as it was, and written once more, if recording failed, or another
// has recorded something that no attempt has seen.
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
