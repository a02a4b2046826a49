// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/provisioning/policy"
)

// 8 KiB every five minutes is negligible even at 5 kB/s.
const (
	maxTailLines = 20
	maxTailBytes = 8 << 10
)

type tailOutput struct {
	pod   string // empty means none
	at    time.Time
	lines []logLine
}

// ReadTail reads the latest output of a running container, which may be lost with its pod, and
// returns a copy of the log with it appended; nil if there is none.
func (r *JobLogReader) ReadTail(ctx context.Context, job *batchv1.Job) *policy.Log {
	ctx, cancel := context.WithTimeout(ctx, jobReadTimeout)
	defer cancel()
	pod, err := r.NewestPod(ctx, job)
	if err != nil || pod == nil || r.hiddenReason != nil {
		return nil
	}
	if pod.Name != r.tail.pod {
		r.AppendTail()
	}
	lines, complete, err := r.readRange(ctx, pod, corev1.PodLogOptions{TailLines: new(int64(maxTailLines)), LimitBytes: new(int64(maxTailBytes))})
	if err == nil && !complete { // long lines: the last ones are cut off
		lines, _, err = r.readRange(ctx, pod, corev1.PodLogOptions{TailLines: new(int64(1)), LimitBytes: new(int64(maxTailBytes))})
	}
	if err != nil || len(lines) == 0 {
		return nil
	}
	r.tail = tailOutput{pod.Name, time.Now(), lines}
	log := r.Log.Clone()
	r.appendTailTo(log)
	return log
}

// AppendTail appends the tail that was read last.
func (r *JobLogReader) AppendTail() {
	r.appendTailTo(r.Log)
	r.tail = tailOutput{}
}

func (r *JobLogReader) appendTailTo(log *policy.Log) {
	if r.tail.pod == "" {
		return
	}
	log.AddLine(time.Now(), fmt.Sprintf("the last log lines of pod %s at %s:", r.tail.pod, humanize.FormatTime(r.tail.at)))
	r.appendLines(log, r.tail.lines)
}
