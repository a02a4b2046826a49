// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/provision"
	"weir.dev/weir/internal/words"
)

// 8 KiB every five minutes is negligible even at 5 kB/s.
const (
	linesHeard = 20
	bytesHeard = 8 << 10
)

type heard struct {
	pod   string // empty means none
	at    time.Time
	lines []line
}

// Listen reads the latest output of a running container, which may be lost with its pod, and
// returns a copy of the log with it appended; nil if there is none.
func (r *Reader) Listen(ctx context.Context, job *batchv1.Job) *provision.Log {
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	pod, err := r.Pod(ctx, job)
	if err != nil || pod == nil || r.unseen != nil {
		return nil
	}
	if pod.Name != r.heard.pod {
		r.TellHeard()
	}
	lines, complete, err := r.readPart(ctx, pod, corev1.PodLogOptions{TailLines: new(int64(linesHeard)), LimitBytes: new(int64(bytesHeard))})
	if err == nil && !complete { // long lines: the last ones are cut off
		lines, _, err = r.readPart(ctx, pod, corev1.PodLogOptions{TailLines: new(int64(1)), LimitBytes: new(int64(bytesHeard))})
	}
	if err != nil || len(lines) == 0 {
		return nil
	}
	r.heard = heard{pod.Name, time.Now(), lines}
	log := r.Log.Clone()
	r.tellHeardTo(log)
	return log
}

// TellHeard appends the tail that was read last.
func (r *Reader) TellHeard() {
	r.tellHeardTo(r.Log)
	r.heard = heard{}
}

func (r *Reader) tellHeardTo(log *provision.Log) {
	if r.heard.pod == "" {
		return
	}
	log.Add(time.Now(), fmt.Sprintf("the last that pod %s had said at %s:", r.heard.pod, words.Stamp(r.heard.at)))
	r.tell(log, r.heard.lines)
}
