package turns

import "context"

type contextKey struct{}

type turn struct {
	tenant string
	urgent bool
}

// NewContext returns a context whose requests are those of a tenant. They are urgent if
// a person waits for them.
func NewContext(ctx context.Context, tenant string, urgent bool) context.Context {
	return context.WithValue(ctx, contextKey{}, turn{tenant, urgent})
}

// FromContext returns whose requests those of a context are. Without NewContext, they are
// not urgent, and of one tenant without a name.
func FromContext(ctx context.Context) (tenant string, urgent bool) {
	turn, _ := ctx.Value(contextKey{}).(turn)
	return turn.tenant, turn.urgent
}

// InContext reports whether a context is from NewContext.
func InContext(ctx context.Context) bool { return ctx.Value(contextKey{}) != nil }
