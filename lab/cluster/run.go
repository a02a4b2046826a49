// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits after a schedule, in virtual time.
const (
	// syncTimeout is the time to get in sync after the last fault: backoff grows to 1,000 s, and a
	// failed pool is retried after 1, 2, 4 and 8 minutes. In half of the worlds the drift period is
	// an hour, too long to recover missed events.
	syncTimeout = 25 * time.Minute
	// settleTime is the time until re-read state is recorded, in addition to a drift period.
	settleTime = 25 * time.Minute
	// maxReadsPerStep is the maximum number of reads per step and minute.
	maxReadsPerStep = 20
	// maxIdleReads is the maximum number of reads in an hour without changes.
	maxIdleReads = 1500
)

// RunSchedule runs a schedule and its checks: invariants after every step, all others after the faults
// have ended. It must run in a bubble. It returns the log.
func RunSchedule(schedule Schedule, settle func()) (log string, err error) {
	schedule.Settle = settle
	s, err := New(schedule.Options)
	if err != nil {
		return "", err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		err = errors.Join(err, s.Close())
		log = s.Log()
	}()
	for n := range schedule.Nodes {
		if err := s.AddNode(n); err != nil {
			return "", err
		}
	}
	for _, namespace := range []string{"shop", "blog"} {
		if err := s.CreatePublicIP(namespaceIPName(namespace)); err != nil {
			return "", err
		}
	}
	s.Start()
	for _, step := range schedule.Steps {
		s.Sleep(step.After)
		s.logs.addAction("%s", step.Text)
		if err := step.apply(s); err != nil {
			if !isIgnorable(err) {
				return "", fmt.Errorf("%s: %w", step.Text, err)
			}
			s.logs.addAction("which changes nothing: %v", err)
		}
		if err := s.checkInvariants(); err != nil {
			return "", err
		}
	}
	s.EndFaults()
	s.logs.addAction("all faults have ended")
	if _, reads := s.trafficSince(); reads > maxReadsPerStep*(len(schedule.Steps)+int(time.Since(s.start)/time.Minute)) {
		return "", fmt.Errorf("%d reads for %d steps in %s", reads, len(schedule.Steps), time.Since(s.start))
	}
	ended := time.Now()
	if err := s.WaitInSync(syncTimeout); err != nil {
		return "", err
	}
	s.logs.addAction("all is in sync after %s", time.Since(ended))
	s.isIdle = true
	if err := s.AddForeign(clusterName+"/"+clusterName, "10.0.9.9"); err != nil && !isIgnorable(err) {
		return "", err
	}
	s.Sleep(settleTime + time.Duration(*s.cfg.DriftSeconds)*time.Second)
	return "", s.CheckIdleHour(maxIdleReads)
}

// isIgnorable reports whether a step failed because its object is missing or already exists.
func isIgnorable(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || strings.Contains(err.Error(), "there is no pool")
}

func (s *Stage) checkInvariants() error {
	return errors.Join(append(s.checkUserIPs(), s.Violations())...)
}
