//go:build race

package front

// racing: memory that is used again is overwritten, so that who holds it too long notices.
const racing = true
