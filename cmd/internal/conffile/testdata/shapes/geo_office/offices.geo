# kept by whoever runs the offices
203.0.113.0/28 1;
203.0.113.9/32 0;
