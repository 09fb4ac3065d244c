package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Poll calls a function until it returns true or an error. When the context ends,
// Poll returns the cause.
func Poll(ctx context.Context, every time.Duration, done func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pollPeriod is the time between two checks in WaitUntil.
const pollPeriod = 20 * time.Millisecond

// WaitUntil calls a check until it returns nil. It gives up when the context or
// one of the processes ends; the error has the last result of the check.
func WaitUntil(ctx context.Context, check func(context.Context) error, needed ...*Process) error {
	last := errors.New("not checked yet")
	err := Poll(ctx, pollPeriod, func(ctx context.Context) (bool, error) {
		for _, p := range needed {
			if err := p.Check(); err != nil {
				return false, err
			}
		}
		err := check(ctx)
		if err == nil || ctx.Err() == nil { // otherwise the error is only that the context ended
			last = err
		}
		return err == nil, nil
	})
	if err == nil || errors.Is(err, ErrEnded) {
		return err
	}
	err = fmt.Errorf("%w: %w", err, last)
	if len(needed) > 0 {
		err = fmt.Errorf("%w%s", err, needed[0].LastLines())
	}
	return err
}
