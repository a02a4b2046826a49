// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"weir.dev/weir/internal/provisioning/policy"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := (RetrySchedule{Policy: policy.DefaultPolicy(), Attempt: 10 * time.Minute}).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := `RETRIES WITHIN   THIS POLICY   AWAY FOR MONTHS
1 day            25            58
1 week           149           196
1 month          622           669
1 year           7513          7561

This policy: 30s × 2 up to 1h, 10m an attempt.
Away for months, a policy for such links: 30s × 1.048 up to 48m, 22m an attempt.
Both as if no retry were the last.

RETRY   WAIT   ALL WAITS   BEGINS AFTER
1       30s    30s         10m30s
2       1m     1m30s       21m30s
3       2m     3m30s       33m30s
4       4m     7m30s       47m30s
5       8m     15m30s      1h5m30s
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}

	out.Reset()
	of := referenceSchedule()
	of.JSON, of.Policy.Retries = true, 2
	if err := of.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	var got struct{ Policy, Beside scheduleJSON }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for period, n := range map[string]int{"1 day": 58, "1 week": 196, "1 month": 669, "1 year": 7561} {
		if got.Policy.RetriesWithin[period] != n || got.Beside.RetriesWithin[period] != n {
			t.Errorf("%s: %d, and beside it %d, want %d", period, got.Policy.RetriesWithin[period], got.Beside.RetriesWithin[period], n)
		}
	}
	if len(got.Policy.Retries) != 2 || got.Policy.Retries[1].Wait != "31.44s" {
		t.Errorf("got %+v", got.Policy.Retries)
	}
}
