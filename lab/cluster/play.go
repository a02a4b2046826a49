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
	// levelWithin is the time to get in sync after the last fault: backoff grows to 1,000 s, and a
	// failed pool is retried after 1, 2, 4 and 8 minutes. In half of the worlds the drift period is
	// an hour, too long to recover missed events.
	levelWithin = 25 * time.Minute
	// settled is the time until re-read state is recorded, in addition to a drift period.
	settled = 25 * time.Minute
	// readsPer is the maximum number of reads per step and minute.
	readsPer = 20
	// restReads is the maximum number of reads in an hour without changes.
	restReads = 1500
)

// Play runs a schedule and its checks: invariants after every step, all others after the faults
// have ended. It must run in a bubble. It returns the log.
func Play(schedule Schedule, settle func()) (log string, err error) {
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
		if err := s.PublicIP(peoplesIP(namespace)); err != nil {
			return "", err
		}
	}
	s.Start()
	for _, step := range schedule.Steps {
		s.Pass(step.After)
		s.log.note("%s", step.Text)
		if err := step.do(s); err != nil {
			if !passes(err) {
				return "", fmt.Errorf("%s: %w", step.Text, err)
			}
			s.log.note("which changes nothing: %v", err)
		}
		if err := s.always(); err != nil {
			return "", err
		}
	}
	s.EndFaults()
	s.log.note("all faults have ended")
	if _, reads := s.since(); reads > readsPer*(len(schedule.Steps)+int(time.Since(s.start)/time.Minute)) {
		return "", fmt.Errorf("%d reads for %d steps in %s", reads, len(schedule.Steps), time.Since(s.start))
	}
	ended := time.Now()
	if err := s.Settles(levelWithin); err != nil {
		return "", err
	}
	s.log.note("all is level after %s", time.Since(ended))
	s.calm = true
	if err := s.AddForeign(clusterName+"/"+clusterName, "10.0.9.9"); err != nil && !passes(err) {
		return "", err
	}
	s.Pass(settled + time.Duration(*s.cfg.DriftSeconds)*time.Second)
	return "", s.Rests(restReads)
}

// passes reports whether a step failed because its object is missing or already exists.
func passes(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || strings.Contains(err.Error(), "there is no pool")
}

// always returns the violated invariants.
func (s *Stage) always() error {
	return errors.Join(append(s.named(), s.Broken())...)
}
